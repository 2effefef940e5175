//! Sigmund's filters and measures, as plans on a super-trace's session
