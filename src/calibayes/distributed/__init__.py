"""Many processes, the same answer."""

from calibayes.distributed.processes import ALONE as ALONE
from calibayes.distributed.processes import Processes as Processes
from calibayes.distributed.processes import ProcessGroupChoice as ProcessGroupChoice
