"""The three containers that hold all state (a window of rows, a group table, registers) and their journals."""
