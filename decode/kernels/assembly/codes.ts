// Result codes: the values of kernels.ts.
export const DONE: i32 = 0; // everything asked for was produced
export const NEED: i32 = 1; // input up to the mark is used up; call again with a higher mark
export const FULL: i32 = 2; // the next value does not fit
export const E_TRUNC: i32 = -1; // the input ends inside something
export const E_LENGTH: i32 = -2; // a declared length disagrees with the room or the page
export const E_OFFSET: i32 = -3; // snappy: copy before the start of the output, or offset 0
export const E_WIDTH: i32 = -4; // bit width over 32
export const E_INDEX: i32 = -5; // dictionary index out of range
export const E_VARINT: i32 = -6; // over-long variable-length integer
export const E_HEADER: i32 = -7; // delta header values not allowed
export const E_UTF8: i32 = -8; // not UTF-8
export const E_VALUE: i32 = -9; // level over its maximum
