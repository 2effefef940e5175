//! OTF2 archives, against libotf2's writer and its readers.

mod drawn;
mod library;
mod read;
mod reference;
mod size;
mod truth;
