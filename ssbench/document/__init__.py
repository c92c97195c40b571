"""What there is to say of something, as a document of a few kinds of elements; renderers know how it looks.

A product (a run, a comparison, a sweep) makes one :class:`~.elements.Document`. The renderers ``text``,
``markdown`` and ``html`` write any document; :mod:`ssbench.reports.products` joins the two.
"""
