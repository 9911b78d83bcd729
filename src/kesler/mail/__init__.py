"""Mail that files itself: a mailbox whose messages are learnt from where people put them.

The command `kesler mail` is what uses it.
"""
