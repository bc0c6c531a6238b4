//! The manual page and the completions of shells, made from the help text of a program, which is
//! made from the catalogue of flags.

use super::files::PackageFile;
use crate::command::{Result, cannot_start, failed};
use std::path::Path;
use std::process::Command;

/// Where clap begins a flag, and its text.
const FLAG_INDENT: &str = "      --";
const SHORT_INDENT: &str = "  -";
const TEXT_INDENT: &str = "          ";

/// `share/man` and the completions of the install's server.
///
/// # Errors
/// The program does not run here.
pub fn read_manual(install: &Path) -> Result<Vec<PackageFile>> {
    let program = install.join("bin/trtserver");
    let mut command = Command::new(&program);
    let printed = command.arg("--help").output().map_err(|e| cannot_start(&command, &e, ""))?;
    // The status is not 0: starts of TRTIS ended so.
    let help = HelpText::parse(&String::from_utf8_lossy(&printed.stdout));
    if help.sections.is_empty() {
        return Err(failed(&command, &printed.status.to_string(), "it printed no help"));
    }
    Ok(vec![
        PackageFile::data("share/man/man1/trtserver.1", help.to_manual()),
        PackageFile::data("share/bash-completion/completions/trtserver", help.to_bash_completion()),
        PackageFile::data("share/zsh/site-functions/_trtserver", help.to_zsh_completion()),
        PackageFile::data("share/fish/vendor_completions.d/trtserver.fish", help.to_fish()),
    ])
}

/// A help text, by its parts.
#[derive(Default)]
struct HelpText {
    about: String,
    usage: Vec<String>,
    sections: Vec<HelpSection>,
}

struct HelpSection {
    title: String,
    flags: Vec<HelpFlag>,
}

struct HelpFlag {
    /// `-h, --help` or `--config <FILE>`.
    head: String,
    text: Vec<String>,
}

impl HelpFlag {
    /// The long name with its dashes.
    fn long(&self) -> Option<&str> {
        self.head.split([' ', ',']).find(|word| word.starts_with("--"))
    }
}

impl HelpText {
    fn parse(text: &str) -> Self {
        let mut lines = text.lines();
        let mut help =
            Self { about: lines.next().unwrap_or_default().to_owned(), ..Self::default() };
        for line in lines {
            let flags = help.sections.last_mut().map(|section| &mut section.flags);
            if line.starts_with(FLAG_INDENT) || line.starts_with(SHORT_INDENT) {
                let flag = HelpFlag { head: line.trim().to_owned(), text: Vec::new() };
                if let Some(flags) = flags {
                    flags.push(flag);
                }
            } else if let Some(text) = line.strip_prefix(TEXT_INDENT)
                && let Some(flag) = flags.and_then(|flags| flags.last_mut())
            {
                flag.text.push(text.trim().to_owned());
            } else if let Some(title) = line.strip_suffix(':').filter(|t| !t.starts_with(' ')) {
                help.sections.push(HelpSection { title: title.to_owned(), flags: Vec::new() });
            } else if help.sections.is_empty() && !line.trim().is_empty() {
                let usage = line.trim_start_matches("Usage:").trim();
                help.usage.push(usage.to_owned());
            }
        }
        help
    }

    fn to_manual(&self) -> String {
        let version = env!("CARGO_PKG_VERSION");
        let mut page = format!(
            ".TH TRTSERVER 1 \"\" \"trtserver {version}\" \"User Commands\"\n.SH NAME\ntrtserver \\- {}\n.SH SYNOPSIS\n",
            escape(&self.about)
        );
        for line in &self.usage {
            page += &format!("{}\n.br\n", escape(line));
        }
        for section in &self.sections {
            page += &format!(".SH {}\n", escape(&section.title.to_uppercase()));
            for flag in &section.flags {
                page += &format!(".TP\n.B {}\n", escape(&flag.head));
                page += &flag.text.iter().map(|line| escape(line) + "\n").collect::<String>();
            }
        }
        page
    }

    fn long_flags(&self) -> impl Iterator<Item = (&str, &HelpFlag)> {
        let flags = self.sections.iter().flat_map(|section| &section.flags);
        flags.filter_map(|flag| Some((flag.long()?, flag)))
    }

    fn to_bash_completion(&self) -> String {
        let names: Vec<&str> = self.long_flags().map(|(name, _)| name).collect();
        format!(
            "_trtserver() {{\n    local word=\"${{COMP_WORDS[COMP_CWORD]}}\"\n    \
             if [[ $word == -* ]]; then\n        \
             COMPREPLY=($(compgen -W \"{}\" -- \"$word\"))\n    else\n        \
             COMPREPLY=($(compgen -f -- \"$word\"))\n    fi\n}}\n\
             complete -o filenames -F _trtserver trtserver\n",
            names.join(" ")
        )
    }

    fn to_zsh_completion(&self) -> String {
        let quote = |text: &str| {
            text.replace('\'', "'\\''").replace('[', "\\[").replace(']', "\\]").replace(':', "\\:")
        };
        let mut text = "#compdef trtserver\n_arguments \\\n".to_owned();
        for (name, flag) in self.long_flags() {
            let about = flag.text.first().map_or("", String::as_str);
            text += &format!("    '*{name}[{}]' \\\n", quote(about));
        }
        text + "    '*:file:_files'\n"
    }

    fn to_fish(&self) -> String {
        let quote = |text: &str| text.replace('\\', "\\\\").replace('\'', "\\'");
        let lines = self.long_flags().map(|(name, flag)| {
            let about = flag.text.first().map_or("", String::as_str);
            let name = name.trim_start_matches('-');
            format!("complete -c trtserver -l {name} -d '{}'\n", quote(about))
        });
        lines.collect()
    }
}

/// Text for roff: no line begins with a dot, and a hyphen of a flag is one that can be copied.
fn escape(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}

#[cfg(test)]
#[path = "man_page_tests.rs"]
mod tests;
