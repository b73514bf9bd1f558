/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checks of every C test here. A test exits 0, 1, or 77 with a reason if it cannot run on this
 * machine.
 */
#ifndef DRAY_CHECK_H
#define DRAY_CHECK_H

#include <stdio.h>
#include <stdlib.h>

/*
 * Ends a failed test with status 1. Each suite has its own, which removes what its tests would
 * leave behind.
 */
_Noreturn void test_failed(void);

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);    \
			test_failed();                                                             \
		}                                                                                  \
	} while (0)

#define CHECK_EQ(a, b)                                                                             \
	do {                                                                                       \
		long long got_ = (long long)(a), want_ = (long long)(b);                           \
		if (got_ != want_) {                                                               \
			fprintf(stderr, "%s:%d: %s is %lld, not %lld (%s)\n", __FILE__, __LINE__,  \
				#a, got_, want_, #b);                                              \
			test_failed();                                                             \
		}                                                                                  \
	} while (0)

#endif
