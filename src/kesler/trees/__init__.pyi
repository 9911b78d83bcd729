from .confusions import tree_of_confusions as tree_of_confusions
from .measures import level_errors as level_errors
from .measures import tree_distances as tree_distances
from .measures import tree_loss as tree_loss
from .paths import PathAnswer as PathAnswer
from .paths import tree_of_paths as tree_of_paths
from .tree import Tree as Tree
