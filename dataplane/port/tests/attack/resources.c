/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Take from inside a function whatever the kernel gives: processes, memory, inotify instances,
 * timers, namespaces, files wherever they can be written, and packet rings. PORT is not used.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "attack.h"
#include "scribble.h"
#include "test.h"

#define MOST 20000 /* of each; the kernel should refuse earlier */
#define BLOCK (1u << 20)

static struct tally *tally;

/* The kernel kills this process, rather than the one that counts. */
static void die_first(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	CHECK(fd >= 0 && write(fd, "1000", 4) == 4);
	close(fd);
}

static void attempt(void)
{
	atomic_fetch_add(&tally->attempts, 1);
}

static void escaped(const char *what)
{
	fprintf(stderr, "escape: %s\n", what);
	atomic_fetch_add(&tally->escapes, 1);
}

/* They end when this process does. */
static void processes(void)
{
	pid_t self = getpid();

	for (unsigned i = 0; i < MOST; i++) {
		pid_t pid = fork();

		attempt();
		if (pid < 0)
			break;
		if (pid == 0) {
			attack_end_with(self);
			for (;;)
				pause();
		}
	}
}

/* Until the kernel kills this process, or refuses. */
static void memory(void)
{
	for (unsigned i = 0; i < MOST; i++) {
		void *p = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

		attempt();
		if (p == MAP_FAILED)
			break;
	}
}

static void shared_memory(void)
{
	static char bytes[BLOCK];
	int fd = memfd_create("attack", MFD_CLOEXEC);

	for (unsigned i = 0; i < MOST && write(fd, bytes, sizeof(bytes)) > 0; i++)
		attempt();
}

static void watches(void)
{
	for (unsigned i = 0; i < MOST; i++) {
		int fd = inotify_init1(IN_CLOEXEC);

		attempt();
		if (fd < 0)
			break;
		(void)!inotify_add_watch(fd, "/tmp", IN_ALL_EVENTS);
	}
}

static void timers(void)
{
	for (unsigned i = 0; i < MOST; i++) {
		timer_t t;

		attempt();
		if (timer_create(CLOCK_MONOTONIC, NULL, &t))
			break;
	}
}

static void sockets(void)
{
	static const char bytes[BLOCK];

	for (unsigned i = 0; i < MOST; i++) {
		int pair[2];

		attempt();
		if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair))
			break;
		while (send(pair[0], bytes, 65536, MSG_NOSIGNAL) > 0)
			;
	}
}

static void namespaces(void)
{
	static const int kinds[] = {CLONE_NEWUSER, CLONE_NEWNET, CLONE_NEWNS,	 CLONE_NEWPID,
				    CLONE_NEWIPC,  CLONE_NEWUTS, CLONE_NEWCGROUP};

	for (unsigned i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		attempt();
		if (unshare(kinds[i]) == 0)
			escaped("unshare");
	}
	if (mount("none", "/tmp", "tmpfs", 0, NULL) == 0)
		escaped("mount");
}

static void rings(void)
{
	struct tpacket_req r = {.tp_block_size = BLOCK,
				.tp_block_nr = 64,
				.tp_frame_size = 2048,
				.tp_frame_nr = 64 * (BLOCK / 2048)};
	int fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));

	attempt();
	if (fd >= 0) {
		escaped("packet socket");
		(void)!setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &r, sizeof(r));
		close(fd);
	}
}

/* Fill one directory of the walk with a file, as far as it goes. */
static int fill(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	static char bytes[BLOCK];
	char name[4096];
	int fd;

	(void)st, (void)walk;
	if (type != FTW_D || access(path, W_OK))
		return 0;
	snprintf(name, sizeof(name), "%s/attack-XXXXXX", path);
	fd = mkstemp(name);
	attempt();
	if (fd < 0)
		return 0;
	for (unsigned i = 0; i < 512 && write(fd, bytes, sizeof(bytes)) > 0; i++)
		attempt();
	unlink(name);
	close(fd);
	return 0;
}

static void files(void)
{
	static const char *const places[] = {"/run", "/tmp", "/dev", "/var/tmp"};

	for (unsigned i = 0; i < sizeof(places) / sizeof(*places); i++)
		(void)!nftw(places[i], fill, 16, FTW_PHYS | FTW_MOUNT);
	(void)!nftw(attack_directory(), fill, 16, FTW_PHYS);
}

static void output(void)
{
	static const char line[4096] = "\033[2J\033]0;title\007 noise ";

	for (unsigned i = 0; i < 2000; i++) {
		attempt();
		(void)!write(2, line, sizeof(line));
	}
}

static void (*const kinds[])(void) = {processes, memory,     shared_memory, watches, timers,
				      sockets,	 namespaces, rings,	    files,   output};

static void life(const char *port, struct tally *t, uint64_t seed, uint64_t until_ns)
{
	unsigned first = (unsigned)(seed >> 8) % (sizeof(kinds) / sizeof(*kinds));

	(void)port;
	tally = t;
	die_first();
	kinds[first]();
	while (clock_ns() < until_ns)
		usleep(1000);
}

int main(int argc, char **argv)
{
	return attack_main(argc, argv, life);
}
