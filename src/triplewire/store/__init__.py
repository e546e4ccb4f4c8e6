"""What a broker keeps, in SQLite or PostgreSQL: `tables` says what is in it, `database` reads and writes it.

"Accepted" means committed and synced. The rules of the broker itself: `triplewire.broker`.
"""
