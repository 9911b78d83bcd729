from .model import Model as Model
from .training import load_model as load_model
from .training import tokenize as tokenize
from .training import train_supervised as train_supervised
