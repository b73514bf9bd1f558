/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sleeps that end only if something wakes the thread, so that a wake-up that is lost shows. Include
 * it in one file of a program: `poll` here is the library's too, since that is linked into the
 * test.
 */
#ifndef DRAY_TEST_UNENDING_H
#define DRAY_TEST_UNENDING_H

#include <poll.h>
#include <sys/syscall.h>
#include <time.h>

#include "test.h"

/* One of these for each thread under test. */
struct sleeper {
	_Atomic bool asleep;
	_Atomic uint64_t sleeps;
};

/* Of this thread; NULL: its sleeps end as the library says. */
static _Thread_local struct sleeper *sleeper;

/* What a lost wake-up takes: far longer than anything here, on any machine. */
static inline int unending_ms(void)
{
	return (int)(test_patience_ns() / 1000000);
}

int poll(struct pollfd *fds, nfds_t n, int ms)
{
	struct timespec t;
	int ret;

	if (!sleeper || ms == 0) {
		t = (struct timespec){ms / 1000, ms % 1000 * 1000000L};
		return (int)syscall(SYS_ppoll, fds, n, ms < 0 ? NULL : &t, NULL, 0);
	}
	ms = unending_ms();
	t = (struct timespec){ms / 1000, ms % 1000 * 1000000L};
	atomic_fetch_add(&sleeper->sleeps, 1);
	atomic_store(&sleeper->asleep, true);
	ret = (int)syscall(SYS_ppoll, fds, n, &t, NULL, 0);
	atomic_store(&sleeper->asleep, false);
	CHECK(ret != 0 && "woken: this sleep should have ended");
	return ret;
}

/* Until a thread has not woken for a while. */
static inline void until_asleep(struct sleeper *s)
{
	uint64_t sleeps;

	do {
		sleeps = atomic_load(&s->sleeps);
		usleep(10000);
	} while (!atomic_load(&s->asleep) || atomic_load(&s->sleeps) != sleeps);
}

#endif
