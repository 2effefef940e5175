//! OTF2 archives, read with the readers of libotf2.

mod drawn;
mod read;
mod size;
mod tables;
mod truth;
