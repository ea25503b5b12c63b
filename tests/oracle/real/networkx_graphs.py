"""Graph algorithms: generators in loops, and generator expressions in sum() and any()."""
# needs: networkx

from _loop import repeat

import networkx

graph = networkx.gnp_random_graph(120, 0.06, seed=5)
flow = networkx.DiGraph((a, b) for a, b in graph.edges)


def step():
    list(networkx.connected_components(graph))
    list(networkx.bfs_edges(graph, 0))
    list(networkx.topological_sort(flow))
    networkx.greedy_color(graph)
    networkx.average_clustering(graph)
    sum(1 for _ in networkx.find_cliques(graph))
    dict(networkx.all_pairs_shortest_path_length(graph, cutoff=2))


repeat(step)
