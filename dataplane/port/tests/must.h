/* SPDX-License-Identifier: Apache-2.0 */
/* The test broker ends its process if it cannot go on: programs that are no tests use it, too. */
#ifndef DRAY_TEST_MUST_H
#define DRAY_TEST_MUST_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static inline void must(bool condition, const char *what)
{
	if (!condition) {
		fprintf(stderr, "test broker: %s: %s\n", what, strerror(errno));
		_exit(1);
	}
}

#endif
