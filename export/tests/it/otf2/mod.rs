//! OTF2 archives, against libotf2's writer and its readers.

mod reference;
