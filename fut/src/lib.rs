//! Probes at the cost of reading the clock, the user trace they write, and a traced M:N runtime
