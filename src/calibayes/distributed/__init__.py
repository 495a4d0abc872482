"""Many processes, the same answer."""

from calibayes.distributed.processes import ALONE as ALONE
from calibayes.distributed.processes import Group as Group
from calibayes.distributed.processes import Processes as Processes
