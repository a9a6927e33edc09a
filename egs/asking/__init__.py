"""What can be asked of a server, as scripts: each function here is one of `egs` and one of `egs.aio`.

They build requests and read answers, and do nothing themselves; `egs.transport` and `egs.aio.transport` carry them out.
"""
