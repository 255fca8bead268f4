/* Under sanitizers everything takes several times as long: tests that go through many cases take every
 * PART-th there.
 */
#ifndef DV_TESTS_PART_H
#define DV_TESTS_PART_H

#ifdef __SANITIZE_ADDRESS__
enum { PART = 4 };
#else
enum { PART = 1 };
#endif

#endif
