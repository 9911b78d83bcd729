"""Few features for all classes: ShareBoost, and exports of predictors that cost little."""
