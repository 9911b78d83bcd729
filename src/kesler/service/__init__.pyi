from .client import Client as Client
from .registry import ModelRegistry as ModelRegistry
from .server import serve as serve
from .settings import Settings as Settings
from .tokens import Tokens as Tokens
from .web import application as application
