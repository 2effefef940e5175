//! The smallest files with every feature, of each format and variant: small enough to be damaged at every byte, and to
//! be seeds for fuzzing.

mod fxt;
mod perf;
mod text;
mod trace_dat;

/// A file, and its content.
pub(crate) struct Tiny {
    /// Format and variant: `perf_data-pipe`. The part before the `-` is the name of its fuzz target.
    pub(crate) name: &'static str,
    pub(crate) bytes: Vec<u8>,
    pub(crate) events: usize,
}

impl Tiny {
    /// Whether it is a text, which may end after any line.
    pub(crate) fn is_text(&self) -> bool {
        self.name.starts_with("ftrace_text") || self.name.starts_with("listing")
    }

    /// Whether it is compressed: a decompressor costs more than the rest.
    pub(crate) fn is_compressed(&self) -> bool {
        self.name.contains("zstd") || self.name.contains("zlib")
    }
}

/// One of each.
pub(crate) fn all() -> Vec<Tiny> {
    [trace_dat::all(), perf::all(), fxt::all(), text::all()].into_iter().flatten().collect()
}

/// An event of the kernel with a string and a number, and its declaration.
pub(crate) const EVENT: &str = "name: e\nID: 9\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\
    \tfield:__data_loc char[] s;\toffset:8;\tsize:4;\tsigned:0;\n\
    \tfield:u32 v;\toffset:12;\tsize:4;\tsigned:0;\n\
    print fmt: \"%s %s\", __get_str(s), __print_symbolic(REC->v, {1, \"one\"})\n";
