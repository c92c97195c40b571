"""Sentences of the program that several tests look for, each by one name.

A sentence is spelt in the test of the module that says it, or here: a better one changes one line.
"""

from __future__ import annotations

#: A key of a scenario that is above zero.
ABOVE_ZERO = "expected a number above 0"
#: A token that could not be renewed.
AGAIN_FAILED = "Authenticating again has failed"
#: The verdict of a suite without a fault.
ALL_OK = "all as they should be"
#: A worker that was lost.
BACK_AGAIN = "is back and is used again"
#: A replica that is slower than those of the same write.
BESIDE_REPLICAS = " ms beside the others"
#: A file that cannot be read.
BROKEN_YAML = "expected YAML or JSON, but it is broken"
#: A folder with more than one call of a suite.
CALLS_TOGETHER = "calls of a suite are taken together"
#: Containers that a store refuses.
CONTAINERS_FAILED = "containers could not be made"
#: The section of the suspects' own times.
EVIDENCE_TITLE = "Own times against peers', by evidence"
#: A key of a scenario that counts something.
FROM_ONE = "expected a whole number from 1 to"
#: A clean-up that does not go on.
GAVE_UP = "the clean-up gave up after 20 failures in"
#: The verdict that accuses the load generator.
GENERATOR_OVERLOADED = "the load generator was overloaded"
#: A plan that does not fit.
HAS_GROUPS = ": the scenario has groups of users"
#: A second worker of one number.
ID_TAKEN = "has the id of the worker on"
#: What part of the operations lacks a line.
LACK_LINES = " of the operations lack a line of a"
#: A container that does not become empty.
LISTED_ARE_GONE = "every listed object is deleted"
#: Why a connection took so long.
LOST_SYN = "a lost SYN that was sent again"
#: Why an answer took so long.
NAGLE = "Nagle's algorithm with delayed ACK"
#: A file that is not overwritten.
NAME_TAKEN = "exists already; give another name"
#: What --find will do.
NEAR_LIMIT = "steps, those near the limit up to 4 times"
#: A condition on something that a run lacks.
NEITHER_OPERATION = "neither an operation nor a group"
#: Latencies of a rate that was not reached.
NEVER_BEGAN = "operations that were due never began"
#: The finding of a stall.
NOTHING_ENDED = "No operation ended for a time"
#: --between without a choice.
NOTHING_VARIES = "no key of these rows varies"
#: A key that groups have instead.
NOT_BESIDE_GROUPS = ": expected no such key beside groups"
#: A device without peers.
NOT_COMPARABLE = "served every request, or too few, so nothing"
#: A worker that is lost.
NOT_HEARD_OF = "has not been heard of"
#: A server that is slow before its clock starts.
NOT_IN_ITS_LOG = "Its own log does not show it"
#: A column without a value.
NOT_MEASURED = "-: not measured, too few operations"
#: An answer of something else than a store.
NOT_S3 = "and none of the S3 API"
#: What the answer could not look at.
NO_CONTAINER_LINES = "line of a container server"
#: Answers that could not be checked.
NO_MD5 = "the store sent no MD5 as ETag in "
#: A run that ends early.
NO_MORE_SENT = "no more operations are sent"
#: A text that is no number of something.
NO_NUMBER = "is not a number of"
#: The verdict without a suspect where something is missing.
NO_OUTLIER = "Inconclusive: no outlier was found, but"
#: A server that does not answer.
NO_RECON = "is recon in its"
#: A device or a pipe instead of a file.
NO_REGULAR_FILE = "is not a regular file"
#: An application that cannot be made.
NO_SCAN = "a scan does not fit"
#: A condition on a class that a scenario lacks.
NO_SIZE_CLASS = "is not a size class"
#: The answer without a suspect.
NO_SLOW_SERVER = "No server is slower than its peers"
#: A file that is missing.
NO_SUCH_FILE = "there is no such file"
#: A key that another excludes.
NO_THINK_TIME = "think_time: expected no think_time beside"
#: A text that is no whole number.
NO_WHOLE_NUMBER = "is not a whole number"
#: A run without workers.
NO_WORKER_READY = "no worker was ready within"
#: The objects of a run, in what is said at its end.
OBJECTS_OF_RUN = "objects that the run created"
#: The answer covers some of the servers.
OF_COMPARABLE = ", of those that can be compared,"
#: A step before the object is made.
OF_NO_OBJECT = "is for an object that does not exist"
#: A worker with other files.
OTHER_FILES = "body: other files than the master has"
#: A refused signature.
OTHER_SECRET = "secret key is not that of the access key"
#: Why objects are written anew.
OTHER_SIZE = "size outside the range of their class"
#: The section of the partitions.
PARTITIONS_TITLE = "Partitions with most requests"
#: The section of the parts of a request.
PARTS_TITLE = "typical and a slow request"
#: A worker that may not take part.
REFUSED_WORKER = "the master refuses this worker"
#: An option for runs without a rate.
RUN_HAS_RATE = "this run has a rate"
#: A worker that cannot be heard.
SAME_KEY = "is the --zmq-key the same on both sides"
#: What a slow server did meanwhile.
SAME_SECONDS = "tells of work in the same seconds."
#: Parts of a run that did not overlap.
SAME_TIME_ONLY = "at the same time for only"
#: A key of a scenario that is a time.
SECONDS_ABOVE_ZERO = "expected a number of seconds above 0"
#: A monitoring server that did not get the end.
SERVER_WAITS = "so the server does not know how the run ended"
#: The section of single requests.
SLOWEST_TITLE = "The slowest requests, server by server"
#: A server that its own log accuses.
SLOW_BY_LOG = "slow by its own log:"
#: An output that would overwrite its input.
STAT_FILE_ITSELF = "that is the stat file itself"
#: Objects were left behind.
STILL_THERE = "objects that the run created are still there"
#: How many requests each device has.
TAKES_PART = "Each device takes part in"
#: The section of all parts.
TIME_GOES = "Where the time goes"
#: A worker that gets no jobs.
UNHEARING = "sends heartbeats but cannot be"
#: A run that was known exactly enough.
UNTIL_ENDED = "--until ended the run after"
#: Operations of a scenario that are no list.
WANTED_MAPPINGS = "expected a list of mappings with a"
#: A key that names something.
WANTED_NAME = "expected a name of"
#: Filters that are no list.
WANTED_NAMES = "expected a list of names"
#: What part of the operations have their lines.
WITH_OBJECT_LINES = "with all object server lines"
#: What part of the operations have a line of a proxy.
WITH_PROXY_LINE = "successes with a proxy's line"
#: The section of ssbench 0.3.9.
WORKER_DISTRIBUTION = "Distribution of requests per worker-ID"
