//! Puts user and kernel events on one time line, and says who was on what
