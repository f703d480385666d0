//! graphmill
