//! The live load: pacer thread, connections, timestamps taken at the socket.
