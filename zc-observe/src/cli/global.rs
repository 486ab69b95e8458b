//! Options of every command.

use std::io::IsTerminal;

use clap::{Args, ValueEnum};

/// Options of every command.
#[derive(Args, Clone, Debug)]
pub struct Global {
    /// Least severe log events that standard error shows
    #[arg(
        long = "log.level",
        global = true,
        value_enum,
        value_name = "LEVEL",
        default_value_t = LogLevel::Warn,
        help_heading = "Global options"
    )]
    pub log_level: LogLevel,

    /// Form of the log
    #[arg(
        long = "log.format",
        global = true,
        value_enum,
        value_name = "FORMAT",
        default_value_t = LogFormat::Text,
        help_heading = "Global options"
    )]
    pub log_format: LogFormat,

    /// Colours: auto asks whether the output is a terminal and heeds NO_COLOR
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "WHEN",
        default_value_t = Color::Auto,
        help_heading = "Global options"
    )]
    pub color: Color,
}

/// `--log.level`.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum LogLevel {
    /// Something is lost.
    Error,
    /// Something is not as it should be.
    Warn,
    /// What is done.
    Info,
    /// How it is done.
    Debug,
    /// Everything.
    Trace,
}

impl LogLevel {
    /// The level's name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

/// `--log.format`.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// `--color`.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Color {
    /// Makes it the choice for everything that this process prints.
    pub fn apply(self) {
        match self {
            Self::Auto => anstream::ColorChoice::Auto,
            Self::Always => anstream::ColorChoice::Always,
            Self::Never => anstream::ColorChoice::Never,
        }
        .write_global();
    }

    /// Whether standard error is coloured.
    #[must_use]
    pub fn on_stderr(self) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => {
                std::io::stderr().is_terminal()
                    && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
            }
        }
    }
}
