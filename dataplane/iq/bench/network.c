/* SPDX-License-Identifier: Apache-2.0 */
/* Two network namespaces with a veth link between them, which end with this process. */
#include "over.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int peer = -1; /* the other namespace */

static void run(const char *command)
{
	must(system(command) == 0, command);
}

/* A child that keeps the other namespace until its descriptor is ours. */
static pid_t hold_namespace(int ready)
{
	pid_t child = fork();

	must(child >= 0, "fork failed");
	if (child > 0)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	must(unshare(CLONE_NEWNET) == 0, "no network namespace: run this as root");
	must(write(ready, "", 1) == 1, "write failed");
	for (;;)
		pause();
}

void network_make(void)
{
	char command[200], ready[32];
	int ends[2];
	pid_t child;

	must(unshare(CLONE_NEWNET) == 0, "no network namespace: run this as root");
	must(pipe2(ends, O_CLOEXEC) == 0, "pipe failed");
	child = hold_namespace(ends[1]);
	must(read(ends[0], command, 1) == 1, "read failed");
	snprintf(command, sizeof(command), "ip link add iq0 type veth peer name iq1 netns %d && ip addr add " NETWORK_ADDRESS "/24 dev iq0 && ip link set iq0 up", child);
	run(command);
	snprintf(command, sizeof(command), "nsenter --net=/proc/%d/ns/net sh -c 'ip addr add 10.255.77.2/24 dev iq1 && ip link set iq1 up'", child);
	run(command);
	snprintf(ready, sizeof(ready), "/proc/%d/ns/net", child);
	peer = open(ready, O_RDONLY | O_CLOEXEC);
	must(peer >= 0, "the network namespace is gone");
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(ends[0]);
	close(ends[1]);
}

void network_enter_peer(void)
{
	must(setns(peer, CLONE_NEWNET) == 0, "setns failed");
}
