//! libfut.
