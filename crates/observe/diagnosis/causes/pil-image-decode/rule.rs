//! Does a run show pil-image-decode? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::failures::Failure;
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::policy::given::PIXEL_BYTES;
use crate::rule::finding::{by_failure, finding, no_memory_in};
use crate::rule::sharing;
use crate::rule::{Judgement, Rule};
use ullage_model::{Evidence, Finding, Fix, Proof};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    match by_failure(analysis, |failure| Ok(refused(analysis, failure))) {
        // A program that decodes many is killed in the midst of one, however small: only an exception says which it was.
        Judgement::Nothing => {
            let refused = |failure: &Failure| failure.exception.is_some() && decodes(failure);
            no_memory_in(analysis, &RULE, "decoding an image", refused, |_| None)
        }
        found => found,
    }
}

fn decodes(failure: &Failure) -> bool {
    const PILLOW: [&str; 12] = [
        "open",
        "load",
        "load_prepare",
        "load_read",
        "convert",
        "new",
        "frombytes",
        "tobytes",
        "resize",
        "copy",
        "__array_interface__",
        "draft",
    ];
    failure.calls("PIL/Image.py", &PILLOW)
        || failure.calls("PIL/ImageFile.py", &PILLOW)
        || failure
            .calls("torchvision/io/image.py", &["read_image", "decode_image", "decode_jpeg", "decode_png"])
}

/// Pillow's own guard.
fn refused(analysis: &Analysis, failure: &Failure) -> Option<Finding> {
    if !failure.text().contains("DecompressionBombError") {
        return None;
    }
    let mut evidence: Vec<Evidence> = sharing::exception_sentence(failure).into_iter().collect();
    if let Some(bytes) = pixels(&failure.text()).map(|pixels| pixels.saturating_mul(PIXEL_BYTES)) {
        let sentence = format!("Decoded, the image takes {} (3 bytes a pixel).", evidence::bytes(bytes));
        evidence.push(evidence::number(
            "decoded size",
            bytes,
            "bytes",
            failure.agent_source(),
            failure.at,
            sentence,
        ));
    }
    let known = Proof::SeenInside;
    Some(finding(analysis, &RULE, failure, known, evidence, &analysis.remedy_context(Some(failure))))
}

/// `Image size (400000000 pixels)`.
fn pixels(text: &str) -> Option<u64> {
    let (_, rest) = text.split_once("Image size (")?;
    rest.split(' ').next()?.parse().ok()
}

fn fixes(_setting: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new(
            "Find such files before training: opening one reads only its size",
            "with Image.open(path) as image:\n    if image.width * image.height > 50_000_000:\n        print(path)",
        ),
        Fix::new(
            "Let the decoder shrink it (JPEG)",
            "image.draft(\"RGB\", (512, 512))  # before anything reads its pixels",
        ),
        Fix::new(
            "Or skip large images",
            "Image.MAX_IMAGE_PIXELS = 50_000_000  # and catch Image.DecompressionBombError",
        ),
    ]
}
