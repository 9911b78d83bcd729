"""Settings: the parameters of the estimators, each described once."""
