//! One section in the hands of the sender.
