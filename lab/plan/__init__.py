"""Plans compared with the changes that new versions really make on a real kube-apiserver: ``make -C lab plan``."""
