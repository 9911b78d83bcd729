from .mistakes import MistakeBound as MistakeBound
from .mistakes import mistake_bound as mistake_bound
from .trees import TreeBound as TreeBound
from .trees import tree_bound as tree_bound
