"""Stages in other processes and on other machines (OR-15), over the mailboxes and chunk edges of a transport."""
