from .batch import fit as fit
from .parameter_mixing import Epoch as Epoch
from .parameter_mixing import learn as learn
from .partitions import Partitions as Partitions
