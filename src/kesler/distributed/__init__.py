"""Past one machine: learners on rows that Dask workers hold."""

from kesler.distributed.batch import fit
from kesler.distributed.parameter_mixing import Epoch, learn
from kesler.distributed.partitions import Partitions

__all__ = ["Epoch", "Partitions", "fit", "learn"]
