/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests have in common: a test exits 0, or 1 after saying where it failed. */
#ifndef VNF_TEST_CHECK_H
#define VNF_TEST_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                                                          \
	do {                                                                                                                      \
		if (!(condition)) {                                                                                               \
			fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);                                   \
			exit(1);                                                                                                  \
		}                                                                                                                 \
	} while (0)

#define CHECK_EQ(a, b)                                                                                                            \
	do {                                                                                                                      \
		long long got_ = (long long)(a), want_ = (long long)(b);                                                          \
		if (got_ != want_) {                                                                                              \
			fprintf(stderr, "%s:%d: %s is %lld, not %lld (%s)\n", __FILE__, __LINE__, #a, got_, want_, #b);           \
			exit(1);                                                                                                  \
		}                                                                                                                 \
	} while (0)

/* Write a file for the program to read; its name is in a static buffer, and `test_no_file` removes it. */
const char *test_file(const char *text);
void test_no_file(void);

#endif
