-- Perfetto's tracks of threads. An LWP's id is its tid; a user thread's, which Perfetto does not know, is its number and 2^32.
-- id: The tid of an LWP; the number of a user thread plus 2^32.
-- utid: The LWP or user thread, as in thread.
-- thread: The user thread; NULL for an LWP.
-- name: The name of the LWP or user thread.
SELECT id, name, utid, thread
FROM thread
