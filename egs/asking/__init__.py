"""Calls to a server, as scripts: each function here is one of `egs` and one of `egs.aio`.

They build requests and read answers, without I/O; `egs.transport` and `egs.aio.transport` run them.
"""
