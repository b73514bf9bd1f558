/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock stands still by which the library gives up a generation whose peer has not followed to
 * the next one, and a queue that nobody polls. On a busy machine both may be a second late. Include
 * it in one file of a program: `clock_gettime` here is the library's too, since that is linked into
 * the test.
 */
#ifndef DRAY_TEST_STILL_H
#define DRAY_TEST_STILL_H

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t id, struct timespec *now)
{
	if (id != CLOCK_MONOTONIC_COARSE)
		return (int)syscall(SYS_clock_gettime, id, now);
	*now = (struct timespec){.tv_sec = 10}; /* long after 0, which stands for never */
	return 0;
}

#endif
