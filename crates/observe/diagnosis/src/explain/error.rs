//! Why could a log not be explained?

/// Why a log could not be explained.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// Not a text.
    #[error("this is not a text (byte {at} is zero): give the output that the job printed (`2>&1 | tee train.log`)")]
    NotText {
        /// Offset of the first zero byte.
        at: u64,
    },
    /// It could not be read to its end.
    #[error("the log could not be read beyond line {line}: {source}")]
    Read {
        /// Lines read so far.
        line: u64,
        /// What the system said.
        source: std::io::Error,
    },
}
