/* SPDX-License-Identifier: Apache-2.0 */
/* What a process has started is found whichever of its threads did; the last of several is followed. */
#include "process.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition) ((condition) ? (void)0 : (fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition), exit(1)))

static pid_t started[2];
static pthread_barrier_t barrier;

/* The thread lives until they have been looked for: else they would become children of another. */
static void *start(void *opaque)
{
	(void)opaque;
	for (unsigned i = 0; i < 2; i++) {
		started[i] = fork();
		CHECK(started[i] >= 0);
		if (started[i] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			pause();
			_exit(0);
		}
	}
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return NULL;
}

int main(void)
{
	const struct process self = {.pid = getpid()};
	pthread_t thread;

	CHECK(process_innermost(&self) == self.pid);
	pthread_barrier_init(&barrier, NULL, 2);
	CHECK(pthread_create(&thread, NULL, start, NULL) == 0);
	pthread_barrier_wait(&barrier);
	CHECK(process_innermost(&self) == started[1]);
	for (unsigned i = 2; i-- > 0;) {
		kill(started[i], SIGKILL);
		CHECK(waitpid(started[i], NULL, 0) == started[i]);
		CHECK(process_innermost(&self) == (i ? started[0] : self.pid));
	}
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	return 0;
}
