/* SPDX-License-Identifier: Apache-2.0 */
/*
 * While packets wait, the pacer wakes when the next is due, but never more often than every
 * EGRESS_PACE_NS: a bucket lets so much of its rate pass at once. An application that keeps sending
 * does most of that work itself.
 */
#include "pacer.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>

#include "../direction.h"

#define SECOND 1000000000ull

static struct timespec time_at(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / SECOND), .tv_nsec = (long)(ns % SECOND)};
}

/* Under the lock, which it gives up meanwhile. */
static void sleep_until_due(struct egress *e, uint64_t due, uint64_t now)
{
	struct timespec until;

	if (due == UINT64_MAX) {
		e->pacer_until = UINT64_MAX;
		pthread_cond_wait(&e->wake, &e->lock);
		return;
	}
	e->pacer_until = egress_wakes(due, now);
	until = time_at(e->pacer_until);
	pthread_cond_timedwait(&e->wake, &e->lock, &until);
}

static void *pace(void *argument)
{
	struct egress *e = argument;

	(void)prctl(PR_SET_NAME, "dray-pacer", 0, 0, 0);
	(void)prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	pthread_mutex_lock(&e->lock);
	while (!e->stop) {
		uint64_t now = clock_ns();

		direction_follow(e->port, 0, e->dir, true);
		egress_run(e, now);
		sleep_until_due(e, egress_due(e, now), now);
	}
	pthread_mutex_unlock(&e->lock);
	return NULL;
}

/* A waiting application lends its priority to the pacer, and the other way round. */
static int init_lock(pthread_mutex_t *lock)
{
	pthread_mutexattr_t attributes;
	int ret = pthread_mutexattr_init(&attributes);

	if (ret)
		return -ret;
	ret = pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
	if (ret == 0)
		ret = pthread_mutex_init(lock, &attributes);
	pthread_mutexattr_destroy(&attributes);
	return -ret;
}

static int init_wake(pthread_cond_t *wake)
{
	pthread_condattr_t attributes;
	int ret = pthread_condattr_init(&attributes);

	if (ret)
		return -ret;
	ret = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	if (ret == 0)
		ret = pthread_cond_init(wake, &attributes);
	pthread_condattr_destroy(&attributes);
	return -ret;
}

int pacer_init(struct egress *e)
{
	int ret = init_lock(&e->lock);

	if (ret)
		return ret;
	ret = init_wake(&e->wake);
	if (ret)
		pthread_mutex_destroy(&e->lock);
	return ret;
}

void pacer_destroy(struct egress *e)
{
	pthread_cond_destroy(&e->wake);
	pthread_mutex_destroy(&e->lock);
}

/* Signals are the application's threads' to handle. */
int pacer_start(struct egress *e)
{
	sigset_t all, before;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = pthread_create(&e->pacer, NULL, pace, e);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	e->has_pacer = ret == 0;
	return -ret;
}

void pacer_stop(struct egress *e)
{
	if (!e->has_pacer)
		return;
	pthread_mutex_lock(&e->lock);
	e->stop = true;
	pthread_cond_signal(&e->wake);
	pthread_mutex_unlock(&e->lock);
	pthread_join(e->pacer, NULL);
	e->has_pacer = false;
}
