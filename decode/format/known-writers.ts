/** What is known to be wrong with files of some writers, by the name that they put into the footer. */

/** Impala packed BIT_PACKED levels from the least significant bit, and they can't be told from right ones. */
export function packsLevelsWrong(createdBy: string | undefined): boolean {
  return createdBy !== undefined && /^impala\b/i.test(createdBy);
}
