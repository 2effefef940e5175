//! The smallest files that have something of everything, of each format and variant: small enough to be damaged at every
//! byte, and to begin to fuzz with.

mod fxt;
mod perf;
mod text;
mod trace_dat;

/// A file, and what it holds.
pub(crate) struct Tiny {
    /// Format and variant: `perf_data-pipe`. What is before the `-` is the name of its fuzz target.
    pub(crate) name: &'static str,
    pub(crate) bytes: Vec<u8>,
    pub(crate) events: usize,
}

impl Tiny {
    /// Whether a text, which ends with any line.
    pub(crate) fn is_text(&self) -> bool {
        self.name.starts_with("ftrace_text") || self.name.starts_with("listing")
    }

    /// Whether it is compressed: a decompressor costs more than all the rest.
    pub(crate) fn is_compressed(&self) -> bool {
        self.name.contains("zstd") || self.name.contains("zlib")
    }
}

/// One of each.
pub(crate) fn all() -> Vec<Tiny> {
    [trace_dat::all(), perf::all(), fxt::all(), text::all()].into_iter().flatten().collect()
}

/// An event of the kernel with a string and a number, as it declares it.
pub(crate) const EVENT: &str = "name: e\nID: 9\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\
    \tfield:__data_loc char[] s;\toffset:8;\tsize:4;\tsigned:0;\n\
    \tfield:u32 v;\toffset:12;\tsize:4;\tsigned:0;\n\
    print fmt: \"%s %s\", __get_str(s), __print_symbolic(REC->v, {1, \"one\"})\n";
