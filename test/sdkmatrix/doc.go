// Command sdkmatrix runs the official Go SDKs over the client transport against simulated
// providers on real sockets and compares what was recorded with what the servers counted;
// it prints one JSON line. It is a module of its own, so that who imports Retrylens does
// not inherit the SDKs.
package main
