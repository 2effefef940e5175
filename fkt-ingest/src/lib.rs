//! The kernel side of a trace: live recording, and trace files of other tools, as one stream of events
