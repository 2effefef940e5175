//! A super-trace as a DataFusion session: tables, views, functions
