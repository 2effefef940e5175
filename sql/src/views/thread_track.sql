-- Perfetto's tracks of threads. An LWP's id is its tid; a user thread's, which Perfetto does not know, is its number and 2^32.
-- id: The tid of an LWP; the number of a user thread plus 2^32.
-- utid: The LWP; NULL for a user thread.
-- thread: The user thread; NULL for an LWP.
-- name: The name of the LWP or user thread.
SELECT CAST(lwp AS BIGINT) AS id, name, lwp AS utid, CAST(NULL AS BIGINT) AS thread
FROM lwps
UNION ALL
SELECT thread + 4294967296 AS id, name, CAST(NULL AS INT) AS utid, thread
FROM threads
