/* SPDX-License-Identifier: Apache-2.0 */
/* Lives of an attacker. */
#include "attack.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "scribble.h"
#include "test.h"

#define LIFE_NS 4000000000ull  /* at most */
#define GRACE_NS 1000000000ull /* to end by itself */
#define PAUSE_US 20000	       /* after a refusal */
#define REPORT_NS 250000000ull /* between reports */

const char *attack_directory(void)
{
	const char *directory = getenv("DRAY_PORTS");

	return directory ? directory : "/run/dray/ports";
}

static void report(const struct tally *t)
{
	printf("{\"attempts\": %llu, \"lives\": %llu, \"refused\": %llu, \"escapes\": %llu, "
	       "\"joined\": %llu}\n",
	       (unsigned long long)t->attempts, (unsigned long long)t->lives,
	       (unsigned long long)t->refused, (unsigned long long)t->escapes,
	       (unsigned long long)t->joined);
	fflush(stdout);
}

/* Wait for a life, which is killed at some time: a close of its own may wait as well. */
static int await(pid_t pid, uint64_t until, const struct tally *t)
{
	static uint64_t reported;
	int status;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (clock_ns() > until)
			kill(pid, SIGKILL);
		if (clock_ns() > reported + REPORT_NS) {
			report(t);
			reported = clock_ns();
		}
		usleep(2000);
	}
	return status;
}

void attack_end_with(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
}

static void live_once(const char *port, attack_life *life, struct tally *t, uint64_t *seed,
		      uint64_t end)
{
	uint64_t now = clock_ns(), until = now + scribble_random(seed) % LIFE_NS;
	pid_t self = getpid(), pid = fork();
	int status;

	CHECK(pid >= 0);
	until = until < end ? until : end;
	if (pid == 0) {
		attack_end_with(self);
		life(port, t, *seed, until);
		_exit(0);
	}
	/* every other one in the middle */
	status = await(pid, *seed & 1 ? now + (until - now) / 2 : until + GRACE_NS, t);
	atomic_fetch_add(&t->lives, 1);
	if (WIFEXITED(status) && WEXITSTATUS(status)) {
		atomic_fetch_add(&t->refused, 1);
		usleep(PAUSE_US);
	}
}

int attack_main(int argc, char **argv, attack_life *life)
{
	struct tally *t =
		mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t end, seed;

	if (argc != 4) {
		fprintf(stderr, "usage: %s PORT SECONDS SEED\n", argv[0]);
		return 2;
	}
	CHECK(t != MAP_FAILED);
	end = clock_ns() + (uint64_t)(atof(argv[2]) * 1e9);
	seed = strtoull(argv[3], NULL, 10) | 1;
	while (clock_ns() < end)
		live_once(argv[1], life, t, &seed, end);
	report(t);
	return 0;
}
