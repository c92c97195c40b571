"""Texts of the reports of known results."""

from __future__ import annotations

import golden

TABLE = """
Known results  (generated with ssbench version 1.0)
Worker count:   2   Concurrency:   4  Ran 2001-09-09 01:46:40 UTC to 2001-09-09 01:46:44 UTC (4s)
Object expiration (X-Delete-After): 60 (sec)

% Ops    C   R   U   D       Size Range       Size Name
 75%   % 25  25  25  25        3 kB           tiny
 25%   %  0  100   0   0      999 GB -   1 TB  huge
---------------------------------------------------------------------
         19  44  19  19      CRUD weighted average

TOTAL
       Count:     3 (    2 error;     3 retries: 100.00%)  Average requests per second:   2.0
                            min       max      avg      std_dev  95%-ile                   Worst latency TX ID
       First-byte latency:  0.125 -   0.250    0.188  (  0.062)    0.250  (all obj sizes)  tx2
       Last-byte  latency:  0.250 -   1.500    0.750  (  0.540)    1.500  (all obj sizes)  tx2
       First-byte latency:  0.125 -   0.125    0.125  (  0.000)    0.125  (    tiny objs)  tx1
       Last-byte  latency:  0.250 -   0.500    0.375  (  0.125)    0.500  (    tiny objs)  tx1
       First-byte latency:  0.250 -   0.250    0.250  (  0.000)    0.250  (    huge objs)  tx2
       Last-byte  latency:  1.500 -   1.500    1.500  (  0.000)    1.500  (    huge objs)  tx2

CREATE
       Count:     1 (    0 error;     0 retries:  0.00%)  Average requests per second:   1.0
                            min       max      avg      std_dev  95%-ile                   Worst latency TX ID
       First-byte latency:  N/A   -   N/A      N/A    (  N/A  )    N/A    (all obj sizes)  \n\
       Last-byte  latency:  0.250 -   0.250    0.250  (  0.000)    0.250  (all obj sizes)  tx0
       First-byte latency:  N/A   -   N/A      N/A    (  N/A  )    N/A    (    tiny objs)  \n\
       Last-byte  latency:  0.250 -   0.250    0.250  (  0.000)    0.250  (    tiny objs)  tx0

READ
       Count:     2 (    1 error;     3 retries: 150.00%)  Average requests per second:   1.0
                            min       max      avg      std_dev  95%-ile                   Worst latency TX ID
       First-byte latency:  0.125 -   0.250    0.188  (  0.062)    0.250  (all obj sizes)  tx2
       Last-byte  latency:  0.500 -   1.500    1.000  (  0.500)    1.500  (all obj sizes)  tx2
       First-byte latency:  0.125 -   0.125    0.125  (  0.000)    0.125  (    tiny objs)  tx1
       Last-byte  latency:  0.500 -   0.500    0.500  (  0.000)    0.500  (    tiny objs)  tx1
       First-byte latency:  0.250 -   0.250    0.250  (  0.000)    0.250  (    huge objs)  tx2
       Last-byte  latency:  1.500 -   1.500    1.500  (  0.000)    1.500  (    huge objs)  tx2

DELETE
       Count:     0 (    1 error;     0 retries:  0.00%)  Average requests per second:   0.0
                            min       max      avg      std_dev  95%-ile                   Worst latency TX ID
       First-byte latency:  N/A   -   N/A      N/A    (  N/A  )    N/A    (all obj sizes)  \n\
       Last-byte  latency:  N/A   -   N/A      N/A    (  N/A  )    N/A    (all obj sizes)  \n\
       First-byte latency:  N/A   -   N/A      N/A    (  N/A  )    N/A    (    tiny objs)  \n\
       Last-byte  latency:  N/A   -   N/A      N/A    (  N/A  )    N/A    (    tiny objs)  \n\

Distribution of requests per worker-ID:  1.000 -   2.000 (avg:   1.500; stddev:   0.500)
"""
SECONDS = '"Seconds Since Start","Requests Completed","Partial"\n1,2,0\n2,0,1\n3,1,1\n'
SUMMARY_TEXT, LONG_SUMMARY, FULL = map(
    golden.kept_text, ("known-summary", "known-summary-verbose", "known-full")
)
